import numpy as np
import pytest

from irgym.measure.checking.agreement import agreement
from irgym.measure.checking.expected import exactly, rounded
from irgym.measure.checking.power import blind_spots
from irgym.measure.checking.problem import best_problem, problem, validation

X = np.random.default_rng(0).standard_normal(100).astype(np.float32)


def expect(function, x, step=4e-7):
    moved = [function(x * np.float32(1 + sign * step)) for sign in (1, -1)]
    return rounded(function(x), moved)


def test_nothing_passes_for_well_conditioned_results():
    assert blind_spots([expect(np.tanh, X), exactly(np.arange(5))], {}) == {}


def test_noise_is_not_checkable():
    noise = expect(lambda x: np.sin(np.float32(1e7) * x), X)
    assert blind_spots([expect(np.tanh, X), noise], {}) == {1: "zeros"}


def test_half_noise_is_not_checkable_either():
    noise = expect(lambda x: np.concatenate([np.sin(np.float32(1e7) * x), x[:5]]), X)
    assert blind_spots([noise], {}) == {0: "zeros"}


def test_results_that_inputs_hardly_touch_are_not_checkable():
    flat = expect(lambda x: np.float32(1000) + np.float32(1e-6) * x, X)
    other = [np.float32(1000) + np.float32(1e-6) * X[::-1]]
    assert blind_spots([flat], {}) == {}
    result = np.where(np.arange(100) < 50, np.nextafter(flat.values, np.float32(2000)), flat.values)
    assert blind_spots([flat], {"other inputs": [result]}) == {0: "other inputs"}
    assert other[0].dtype == np.float32


def test_constant_results_have_fewer_wrong_answers():
    zeros = exactly(np.zeros(3, np.float32))
    assert blind_spots([zeros], {"other inputs": [np.zeros(3, np.float32)]}) == {}


def test_better_scaled_inputs_are_drawn():
    tried = []

    def draw(scale):
        tried.append(scale)
        x = X * np.float32(scale)
        return problem([x], [expect(lambda x: np.sin(np.float32(1e7) * x), x)], {})

    found = best_problem(draw)
    assert not found.blind and tried == [1.0, 1e-3, 1e-6][: len(tried)] and len(tried) > 1
    assert found.judge([np.sin(np.float32(1e7) * found.inputs[0])]).ok
    assert not found.judge([np.cos(np.float32(1e7) * found.inputs[0])]).ok


def test_inputs_that_round_to_nothing_are_no_better():
    scales = []

    def draw(scale):
        scales.append(scale)
        x = np.trunc(X * np.float32(scale * 100)).astype(np.int32)
        noise = expect(lambda x: np.sin(np.float32(1e7) * x), X) if scale == 1 else exactly(x * 0)
        return problem([x], [noise, exactly(x)], {"other inputs": [noise.values[::-1], x[::-1]]})

    found = best_problem(draw)
    assert scales == [1.0, 1e-3, 1e-6, 1e3]
    assert found.blind and not found.idle


def test_inputs_are_drawn_anew_where_results_do_not_depend_on_them():
    def draw(scale):
        x = X * np.float32(scale)
        relu = expect(lambda x: np.maximum(x - np.float32(100), 0), x)
        return problem([x], [relu], {"other inputs": [np.maximum(x[::-1] - np.float32(100), 0)]})

    found = best_problem(draw)
    assert found.inputs[0].max() > 100 and not found.unseen
    never = best_problem(lambda scale: problem([X], [exactly(X * 0)], {"other inputs": [X * 0]}))
    assert not never.blind and never.unseen == {0}


def test_a_slightly_wrong_answer_must_show_in_one_number():
    expected = expect(np.tanh, X)
    for off, blind in ((0, {}), (0.1, {}), (0.9, {0: "a term"}), (2, {})):
        result = expected.values.astype(np.float64)
        result[3] += off * expected.allowance[3]
        found = blind_spots([expected], {}, {"a term": [result.astype(np.float32)]})
        assert found == blind, off


def test_results_without_a_number_are_not_checkable():
    nothing = exactly(np.full(3, np.nan, np.float32))
    some = exactly(np.array([np.nan, 1, 2], np.float32))
    assert blind_spots([nothing, some], {}) == {0: "anything that is no number"}


def test_the_least_blind_inputs_are_taken_where_none_help():
    noise = expect(lambda x: np.sin(np.float32(1e7) * x), X)

    def draw(scale):
        return problem([X], [noise] if scale == 1e-3 else [noise, noise], {})

    assert len(best_problem(draw).blind) == 1


def test_an_output_seen_on_any_input_counts_as_checked():
    noise, clean = expect(lambda x: np.sin(np.float32(1e7) * x), X), expect(np.tanh, X)
    problems = [problem([X], both, {}) for both in ([noise, clean], [clean, clean])]
    agreements = [checked.judge([result.values for result in checked.expected]) for checked in problems]
    found = validation(problems, agreements, "words")
    assert found.checked and found.inputs == 2
    found = validation(problems[:1], agreements[:1], "words")
    assert found.ok and not found.checked and found.blind == "zeros would pass for result 0 of 2"


def test_a_failure_says_where():
    checked = problem([X], [expect(np.tanh, X)], {})
    found = validation([checked], [agreement(checked.expected, [np.tanh(X) + np.float32(0.1)])], "words")
    assert not found.ok and not found.checked and "100 of 100" in found.detail and found.error > 1


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.float32])
def test_wrong_answers_of_all_types_show(dtype):
    assert blind_spots([exactly(np.array([0, 1, 1, 0]).astype(dtype))], {}) == {}
