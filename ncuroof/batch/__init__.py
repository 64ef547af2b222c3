"""Load many reports into a dataset on any file system that fsspec supports, with Dask.

Like `cli`, it may import every other room; only `cli` imports it.
"""
