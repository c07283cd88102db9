"""Child processes in which candidates may crash, hang or exhaust memory."""
