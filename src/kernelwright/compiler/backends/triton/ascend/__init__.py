"""Triton kernels for an Ascend NPU, without one: launches that the interpreter saw in, what triton-ascend makes of them out.

triton-ascend owns the name `triton`, so it lives in an environment of its own and is run as a program:

1. `environment`  where it is, and CANN; what is missing, in words (asked by the judge's parent, which knows the settings)
2. `text`         a launch as plain data: the functions' text with all that they name, arguments without their memory
3. `child`        the program that its Python runs: to Triton's IR, to linalg, and with CANN to a binary
4. `lower`        runs that program inside the candidate's sandbox, and reads what it says
"""
