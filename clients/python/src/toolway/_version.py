"""The version of the package, which is the version of Toolway that it was made with."""

__version__ = "0.1.0"
