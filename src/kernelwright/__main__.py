"""`python -m kernelwright` is the same program as `kernelwright`."""

from kernelwright.cli.main import main

if __name__ == "__main__":
    main()
