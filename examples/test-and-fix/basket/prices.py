"""Prices of a basket, in cents."""


def total(prices: list[int], discount: int = 0) -> int:
    """Add up prices, and take off a discount in percent."""
    return sum(prices) * discount // 100


def shown(cents: int) -> str:
    """Write a price as people read it: 1205 is 12.05."""
    return f"{cents // 100}.{cents % 100}"
