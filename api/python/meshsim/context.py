"""Contexts: the calls of the library, with options as keyword arguments and results as dataclasses."""

import ctypes
import json

from . import library, results

_lib = library.load()


class Error(Exception):
    """A call failed: bad input, a file that cannot be read, exhausted memory. `status` is that of the library."""

    def __init__(self, status, text):
        super().__init__(text.strip() or _lib.meshsim_status_text(status).decode())
        self.status = status


class DoesNotFit(Error):
    """No plan fits into memory or keeps the limits. `result` says what is missing and what would fit."""

    result = None


class Cancelled(Error):
    """A search was cancelled. `result` is what it had found."""

    result = None


def version():
    """The version of the library."""
    return _lib.meshsim_version().decode()


def _options(options):
    return json.dumps({key: value for key, value in options.items() if value is not None}).encode()


class Plan:
    """A complete plan, made by Context.plan."""

    def __init__(self, handle, fields):
        self._handle = handle
        self.fields = fields  #: the document meshsim.plan/1 as a dict

    def __del__(self):
        if self._handle:
            _lib.meshsim_plan_close(self._handle)
            self._handle = None

    def __repr__(self):
        mesh = " x ".join(f"{axis['axis']} {axis['size']}" for axis in self.fields["mesh"] if axis["size"] > 1)
        return f"<Plan {self.fields['model']}: {mesh or 'one GPU'}>"


class Context:
    """Settings and errors of one caller; one thread at a time may use it, others may cancel."""

    def __init__(self, threads=None, data_folder=None):
        handle = ctypes.c_void_p()
        self._handle = None
        self._check(_lib.meshsim_open(ctypes.byref(handle)))
        self._handle = handle
        if threads is not None:
            self._check(_lib.meshsim_set_threads(handle, threads))
        if data_folder is not None:
            self._check(_lib.meshsim_set_data_folder(handle, str(data_folder).encode()))

    def close(self):
        """Frees the context."""
        _lib.meshsim_close(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if self._handle:
            self.close()

    def _check(self, status):
        if status != library.OK:
            raise Error(status, _lib.meshsim_error(self._handle).decode() if self._handle else "")

    def _result(self, status, text, make):
        """What a call returned, made of its JSON; raises what its status says."""
        result = None
        if text.value:
            result = make(json.loads(ctypes.string_at(text.value)))
            _lib.meshsim_free(text)
        if status in (library.ENOFIT, library.EINTERRUPTED):
            error = (DoesNotFit if status == library.ENOFIT else Cancelled)(status, self.error)
            error.result = result
            raise error
        self._check(status)
        return result

    @property
    def error(self):
        """Errors and hints of the last call; "" if it had none."""
        return _lib.meshsim_error(self._handle).decode()

    @property
    def notes(self):
        """Notes of the last call and the defaults that it took: dicts of "kind" and "text"."""
        return json.loads(_lib.meshsim_notes(self._handle))

    def cancel(self):
        """Ends the call that is at work in this context, or the next one; any thread may."""
        _lib.meshsim_cancel(self._handle)

    def names(self, kind):
        """The names of "models", "clusters" or "stacks"."""
        text = ctypes.c_void_p()
        return self._result(_lib.meshsim_names(self._handle, kind.encode(), ctypes.byref(text)), text, list)

    def model(self, name, **options):
        """Parameters and shapes of a model, by name or path."""
        text = ctypes.c_void_p()
        status = _lib.meshsim_model(self._handle, str(name).encode(), _options(options), ctypes.byref(text))
        return self._result(status, text, results.Model)

    def cluster(self, name):
        """Devices and network of a cluster, by name or path, as a dict."""
        text = ctypes.c_void_p()
        return self._result(_lib.meshsim_cluster(self._handle, str(name).encode(), ctypes.byref(text)), text, dict)

    def plan(self, base=None, **options):
        """A complete plan of options, which override those of `base`: a Plan, or a dict of meshsim.plan/1."""
        handle, text = ctypes.c_void_p(), ctypes.c_void_p()
        fields = base.fields if isinstance(base, Plan) else base
        document = None if fields is None else json.dumps(fields).encode()
        self._check(_lib.meshsim_plan_open(self._handle, document, _options(options), ctypes.byref(handle)))
        plan = Plan(handle, None)
        status = _lib.meshsim_plan_json(self._handle, handle, ctypes.byref(text))
        plan.fields = self._result(status, text, dict)
        return plan

    def _ask(self, function, plan, make, options):
        made = plan if isinstance(plan, Plan) else self.plan(plan)
        text = ctypes.c_void_p()
        return self._result(function(self._handle, made._handle, _options(options), ctypes.byref(text)), text, make)

    def predict(self, plan, **options):
        """Step time, where it goes, and memory of a Plan or a dict; DoesNotFit if it does not fit."""
        return self._ask(_lib.meshsim_predict, plan, results.Prediction, options)

    def explain(self, plan, **options):
        """Why a plan costs what it does."""
        return self._ask(_lib.meshsim_explain, plan, results.Explanation, options)

    def export(self, plan, format, **options):
        """The plan in the words of a framework, such as "megatron": the text of a script or a file."""
        return self._ask(_lib.meshsim_export, plan, dict, {"format": format, **options})["text"]

    def simulate(self, plan, **options):
        """The step of a plan, task by task."""
        return self._ask(_lib.meshsim_simulate, plan, results.Simulation, options)

    def search(self, plan=None, progress=None, **options):
        """The fastest plans of a space. `progress(done_frac, elapsed_s, best_step_s)` may return True to cancel."""
        raised = []

        def report(_, done_frac, elapsed_s, best_step_s):
            try:
                return int(bool(progress(done_frac, elapsed_s, best_step_s)))
            except BaseException as mistake:  # cannot pass through C: it ends the search, and is raised again below
                raised.append(mistake)
                return 1

        callback = library.PROGRESS(report) if progress else ctypes.cast(None, library.PROGRESS)
        made = plan if plan is None or isinstance(plan, Plan) else self.plan(plan)
        text = ctypes.c_void_p()
        status = _lib.meshsim_search(self._handle, made._handle if made else None, _options(options), callback, None,
                                     ctypes.byref(text))
        if raised:
            _lib.meshsim_free(text)
            raise raised[0]
        return self._result(status, text, results.Search)
