"""Files of torch.export, opened without running anything that they hold.

torch's own reader runs code of a file in many ways: it unpickles weights, constants and inputs, evaluates
sizes as Python, looks operators up as attributes of the module `torch`, and compiles names and guards as
source. So a file is read here first, whatever is not plain data is refused, and torch gets a copy of what was
read.
"""
