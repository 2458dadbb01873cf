"""What a launch does on a device, counted, and how long it would take, predicted. Nothing here is a measurement.

    counted = count(launch_of_blocks, grid, ...)          # a few blocks, executed with counts and a cache
    prediction = predict(counted, hardware, resources)    # seconds, what bounds them, what to change

- `hardware`  the figures of a device that a prediction needs: pipes, caches, latencies.
- `costs`     what an instruction of PTX takes of the pipes, and how long its result takes.
- `sampling`  which blocks stand for a grid, and what was counted in them: instructions, sectors, what blocks share.
- `interval`  the model: issue, pipes, latency at the occupancy, bandwidth by level, waves.
- `advice`    what to change, in three sentences.
- `source_lines`  the counts by source line, and what share of the time each line takes.
- `recorded`  launches kept with copies of their memory, to be counted when the program has gone on.
"""

from kernelwright.gpu.profile.hardware import Hardware, Latencies, Resources
from kernelwright.gpu.profile.interval import Prediction, predict
from kernelwright.gpu.profile.recorded import Recorded, Recorder
from kernelwright.gpu.profile.sampling import Counted, count
from kernelwright.gpu.profile.source_lines import Line, by_line

__all__ = [
    "Counted", "Hardware", "Latencies", "Line", "Prediction", "Recorded", "Recorder", "Resources", "by_line", "count", "predict",
]  # fmt: skip
