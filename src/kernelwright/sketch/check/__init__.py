"""What can be proved of a sketch before any code is written.

1. `rules`         the checker: shapes, dtypes, bounds, reads before writes, what two parallel iterations store
2. `declarations`  symbols, tensors, tunables, names
3. `bounds`        indices inside loops, proved within their tensors
4. `races`         stores of parallel iterations, proved apart
5. `all_sizes`     what these leave open where sizes are dynamic: `claims`, put to a `solver`, then to `small_sizes`
"""
