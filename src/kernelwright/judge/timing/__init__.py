"""The clock: one stopwatch for all contenders, interleaved, alone on the machine.

1. `clock`         contenders in, a Timing with its interval out; `statistics` medians and bootstrap
2. `contender`     one contender as the parent sees it; `stopwatch` (CPU) and `device_stopwatch` (GPU, NPU) run in its process
3. `baselines`     PyTorch eager, torch.compile and plug-ins, as workers (`baseline_worker`); `bandwidth` what memory gives meanwhile
4. `fresh_data`    independent data for every timed call;   `roofline` what the hardware allows;   `race` kernels against each other
"""
