"""The C library: where it is found, and the types of its functions."""

import ctypes
import ctypes.util
import os

SONAME = "libmeshsim.so.0"
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_double)

OK, EIO, EINPUT, ENOFIT, ECHECK, ENOMEM, EINTERRUPTED = 0, 1, 2, 3, 4, 5, 130

_handle, _text, _out = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
_functions = {
    "version": (_text, []),
    "status_text": (_text, [ctypes.c_int]),
    "open": (ctypes.c_int, [_out]),
    "close": (None, [_handle]),
    "set_data_folder": (ctypes.c_int, [_handle, _text]),
    "set_threads": (ctypes.c_int, [_handle, ctypes.c_int]),
    "cancel": (None, [_handle]),
    "error": (_text, [_handle]),
    "notes": (_text, [_handle]),
    "names": (ctypes.c_int, [_handle, _text, _out]),
    "model": (ctypes.c_int, [_handle, _text, _text, _out]),
    "cluster": (ctypes.c_int, [_handle, _text, _out]),
    "plan_open": (ctypes.c_int, [_handle, _text, _text, _out]),
    "plan_json": (ctypes.c_int, [_handle, _handle, _out]),
    "plan_close": (None, [_handle]),
    "predict": (ctypes.c_int, [_handle, _handle, _text, _out]),
    "explain": (ctypes.c_int, [_handle, _handle, _text, _out]),
    "export": (ctypes.c_int, [_handle, _handle, _text, _out]),
    "simulate": (ctypes.c_int, [_handle, _handle, _text, _out]),
    "search": (ctypes.c_int, [_handle, _handle, _text, PROGRESS, ctypes.c_void_p, _out]),
    "free": (None, [ctypes.c_void_p]),
}


def load():
    """The library that $MESHSIM_LIBRARY names, or that the loader or ../../../lib beside the package has."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    paths = [os.environ.get("MESHSIM_LIBRARY"), beside if os.path.exists(beside) else None, SONAME,
             ctypes.util.find_library("meshsim")]
    mistakes = []
    for path in filter(None, paths):
        try:
            loaded = ctypes.CDLL(path)
        except OSError as mistake:
            mistakes.append(str(mistake))
            continue
        for name, (result, arguments) in _functions.items():
            function = getattr(loaded, "meshsim_" + name)
            function.restype, function.argtypes = result, arguments
        return loaded
    raise ImportError(f"{SONAME} is not found ({'; '.join(mistakes)}); install it, or set MESHSIM_LIBRARY to its path")
