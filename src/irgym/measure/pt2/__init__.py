"""Files of torch.export, opened without running any code that they contain.

torch's reader may run code of a file in many ways: it unpickles weights, constants and inputs, evaluates
sizes as Python, looks operators up as attributes of the module `torch`, and compiles names and guards as
source. A file is therefore read here first, everything except plain data is refused, and torch gets a copy of
the checked content.
"""
