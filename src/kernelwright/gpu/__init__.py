"""A GPU in software: PTX in; execution on the CPU, errors with their source lines and counts out."""
