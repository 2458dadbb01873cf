"""What is known beforehand and what was learnt: skills and past kernels, chosen for a task.

1. `families.py`: the operators of a task in, the families of kernel it belongs to out.
2. `skills.py`: Markdown files with front matter, written by us for each language and target; chosen by family, stage and words.
3. `lessons.py`: kernels that won, sketches, and failure→fix pairs, kept in the store and brought back for similar tasks.

Everything that is chosen says why it was chosen, and the choice goes into the run's journal.
"""
