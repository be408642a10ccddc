import unittest

from basket.prices import shown, total


class Prices(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(total([500, 705]), 1205)

    def test_discount(self) -> None:
        self.assertEqual(total([1000], discount=10), 900)

    def test_shown(self) -> None:
        self.assertEqual(shown(1205), "12.05")


if __name__ == "__main__":
    unittest.main()
