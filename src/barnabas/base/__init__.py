"""What every room stands on: ids, errors, the list of compiled kernels. Imports nothing of ours."""
