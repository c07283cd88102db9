"""The reason for which a file of torch.export is not loaded."""


class Refused(Exception):
    """A file is not loaded. The message is what follows the file's name in a sentence: "holds ..."."""
