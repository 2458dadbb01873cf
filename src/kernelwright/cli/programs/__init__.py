"""Commands about whole programs: `bench networks` and `optimize`."""
