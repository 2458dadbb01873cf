"""`kernelwright bench networks`: whole networks through the torch.compile backend, against eager and Inductor.

In: names of networks, batches, contenders. Out: a folder with `report.md`, `report.json` and a file for each case.

- `catalogue`  the networks by name: ours (`vision`, `sequences`) and those of `transformers` (`hub`)
- `worker`     one network at one batch in a process of its own, with empty caches: right? how fast, in turns? how long the first call?
- `measured`   what it found, as data
- `bench`      case after case; a case that is known is not run again
- `report`     the table and its means
"""
