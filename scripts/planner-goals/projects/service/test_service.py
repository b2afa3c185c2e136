import unittest

from service import visit


class VisitTest(unittest.TestCase):
    def test_visits_are_counted(self):
        self.assertEqual(visit(visit({}, "a"), "a"), {"a": 2})


if __name__ == "__main__":
    unittest.main()
