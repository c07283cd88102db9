"""Which models there are: networks of exporters, and files, their URIs, and what their inputs may hold."""
