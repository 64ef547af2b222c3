"""The native reader: decodes reports without NVIDIA's module."""
