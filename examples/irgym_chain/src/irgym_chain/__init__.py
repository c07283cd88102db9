"""In which order to multiply a chain of matrices: an example of an irgym plug-in."""
