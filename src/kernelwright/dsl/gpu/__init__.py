"""What languages for GPUs share: reading the compilers' results, and making a sketch for a CPU into one for a GPU."""
