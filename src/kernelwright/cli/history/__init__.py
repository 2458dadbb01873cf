"""What was run: lists of runs, one run step by step, two runs or kernels compared, the table by which a team goes on."""
