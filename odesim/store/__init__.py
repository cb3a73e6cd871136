"""Runs on disk: zarr v3 folders that xarray reads, and export to csv and netCDF.

zarr and xarray are imported when a run is read or written, not before.
"""

from odesim.store.export import FORMATS, export_run
from odesim.store.paths import check_new_file, check_new_run, check_writable_folder
from odesim.store.read import open_run, read_solution
from odesim.store.write import WriteResult, to_plain, write_solution

__all__ = [
    "FORMATS",
    "WriteResult",
    "check_new_file",
    "check_new_run",
    "check_writable_folder",
    "export_run",
    "open_run",
    "read_solution",
    "to_plain",
    "write_solution",
]
