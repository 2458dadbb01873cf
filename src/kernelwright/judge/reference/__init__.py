"""What must come out: the trusted worker that draws inputs, runs the reference and compares.

1. `referee`      the worker: requests in, inputs, expected facts and findings out; `facts` the first run, `trials` which trials a task gets
2. `reference`    the module in its own dtype and in fp64; `weights` parameters that tell, `inputs` distributions and layouts
3. `expect`       one trial's expectation; `sampled` for large tasks, `choices` for indices that are as good as the reference's own
4. `numerics`     how far a kernel may be from the truth; `regions` where it differs, in words; `heap` memory that goes back to the system
"""
