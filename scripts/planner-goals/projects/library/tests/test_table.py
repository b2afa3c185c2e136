import unittest

from textkit import table


class TableTest(unittest.TestCase):
    def test_columns_are_aligned(self):
        self.assertEqual(table([["a", 1], ["long", 22]]), "a     1\nlong  22")
