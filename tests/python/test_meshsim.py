"""The Python package over the library: results, errors, progress, notebooks' tables."""

import json
import os
import subprocess
import threading
import unittest

import meshsim

OPTIONS = {"model": "8b", "gpus": 64, "tp": 4, "pp": 2, "zero": 1}
FLAGS = "--model 8b --gpus 64 --tp 4 --pp 2 --zero 1".split()


def program(*arguments):
    done = subprocess.run([os.environ["MESHSIM"], *arguments, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)


class Meshsim(unittest.TestCase):
    def setUp(self):
        self.ms = meshsim.Context()

    def tearDown(self):
        self.ms.close()

    def test_answers_are_those_of_the_program(self):
        plan = self.ms.plan(**OPTIONS)
        self.assertEqual(self.ms.predict(plan).json, program("predict", *FLAGS))
        self.assertEqual(self.ms.explain(plan, questions=True).json, program("explain", *FLAGS, "--questions"))
        self.assertEqual(self.ms.simulate(plan, detail="action", slow=["rank=5:1.3"]).json,
                         program("simulate", *FLAGS, "--detail", "action", "--slow", "rank=5:1.3"))
        self.assertEqual(self.ms.model("8b").json, program("model", "8b"))
        self.assertEqual(self.ms.cluster("hgx-h100"), program("cluster", "hgx-h100"))
        self.assertEqual(meshsim.version(), program("version")["version"])
        self.assertIn("llama-3.1-8b", self.ms.names("models"))

    def test_a_search_has_typed_plans(self):
        found = self.ms.search(model="8b", gpus=16, top=3, fix=["pp=1"])
        self.assertTrue(found.optimal)
        self.assertEqual(len(found.plans), len(found.json["plans"]))
        best = found.best
        self.assertEqual(self.ms.predict(best.plan).step_s, best.step_s)
        self.assertAlmostEqual(sum(best.parts().values()), best.step_s, delta=0.05 * best.step_s)
        self.assertEqual(found.rows()[0]["pp"], 1)
        again = self.ms.search(best.plan, top=1)
        self.assertEqual(again.json["gpus"], 16)

    def test_notebooks_show_tables(self):
        found = self.ms.search(model="8b", gpus=16, top=2, fix=["pp=1"])
        self.assertEqual(found._repr_html_().count("<tr>"), 1 + len(found.plans))
        self.assertIn("<svg", found.best._repr_html_())
        self.assertIn("mlp", self.ms.model("8b")._repr_html_())
        self.assertIn("a &lt;b&gt;", meshsim.compare(**{"a <b>": found})._repr_html_())

    def test_pandas_takes_rows(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas")
        found = self.ms.search(model="8b", gpus=16, top=2, fix=["pp=1"])
        self.assertEqual(len(pandas.DataFrame(found.rows())), len(found.plans))

    def test_errors_are_exceptions(self):
        with self.assertRaisesRegex(meshsim.Error, "--tpp"):
            self.ms.plan(model="8b", tpp=4)
        with self.assertRaises(meshsim.DoesNotFit) as raised:
            self.ms.predict(self.ms.plan(model="70b", gpus=8))
        self.assertFalse(raised.exception.result.fits)
        self.assertIn("hint", str(raised.exception))
        with self.assertRaises(meshsim.Error):
            meshsim.Context(data_folder="/no/folder")

    def test_a_search_can_be_cancelled(self):
        self.ms.cancel()
        with self.assertRaises(meshsim.Cancelled) as raised:
            self.ms.search(model="70b", gpus=512)
        self.assertIsInstance(raised.exception.result, meshsim.Search)

    def test_contexts_work_side_by_side(self):
        steps = [None] * 4

        def work(index):
            with meshsim.Context() as ms:
                steps[index] = ms.predict(ms.plan(**OPTIONS)).step_s

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(steps)), 1)
        self.assertGreater(steps[0], 0.0)


if __name__ == "__main__":
    unittest.main()
