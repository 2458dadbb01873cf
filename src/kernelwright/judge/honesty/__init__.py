"""Whether a kernel did the work itself: what ran is observed, never grepped.

1. `trace`         torch operators that computed, libraries in the process: what the track is decided on
2. `sampling`      where the time went, seen from outside;   `suspicion` what timed blocks give away
3. `null_kernels`  candidates that do no work, run against every task
4. `gallery`       known cheats that must be rejected, honest kernels that must be accepted, and the judge's error rates
"""
