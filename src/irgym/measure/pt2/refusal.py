"""The error for a file of torch.export that is refused."""


class Refused(Exception):
    """A file is refused. The message continues a sentence that begins with the file's name: "holds ..."."""
