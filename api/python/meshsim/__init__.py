"""Step time and memory of plans to train language models, and the search for the best of them.

Everything is computed by libmeshsim, which is loaded by ctypes. Options are keyword arguments named like the options of the
program, with "_" for "-":

    with meshsim.Context() as ms:
        found = ms.search(model="8b", gpus=64, cluster="hgx-h100", top=3)
        found.plans[0].step_s
        ms.predict(found.plans[0].plan, tp=8)
"""

from .context import Cancelled, Context, DoesNotFit, Error, Plan, version
from .results import Explanation, Model, Prediction, Search, Simulation, compare

__all__ = ["Cancelled", "Context", "DoesNotFit", "Error", "Explanation", "Model", "Plan", "Prediction", "Search",
           "Simulation", "compare", "version"]
