"""The mouse over the page, in pixels of the screen."""

from __future__ import annotations

from selenium.webdriver import Chrome
from selenium.webdriver.common.actions.action_builder import ActionBuilder

Place = tuple[int, int]


def click(browser: Chrome, place: Place) -> None:
    actions = ActionBuilder(browser)
    actions.pointer_action.move_to_location(*place)
    actions.pointer_action.click()
    actions.perform()


def double_click(browser: Chrome, place: Place) -> None:
    actions = ActionBuilder(browser)
    actions.pointer_action.move_to_location(*place)
    actions.pointer_action.double_click()
    actions.perform()


def drag(browser: Chrome, start: Place, end: Place) -> None:
    actions = ActionBuilder(browser)
    actions.pointer_action.move_to_location(*start)
    actions.pointer_action.pointer_down()
    middle = ((start[0] + end[0]) // 2, (start[1] + end[1]) // 2)
    for place in (middle, end):
        actions.pointer_action.move_to_location(*place)
    actions.pointer_action.pointer_up()
    actions.perform()
