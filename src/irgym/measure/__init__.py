"""Measuring: isolated processes, timing, the machine, the cost cache, farms, checks of results.

Costs: `evaluators` answer jobs from the `cache` or by a farm, `bench` bundles both, `timing` and `peak` are
the protocols, `baselines` and `arrays` what environments share. Machine: `machine`, `target`, `variables` and
`locks`. Processes: `isolation/` (one child), `replies`, `opening` (files under limits), `pool` (many children
that keep state), `farm/` (this machine or others), `external/` (programs that answer lines). Results:
`checking/`, `callables/` (functions and torch modules), `pt2/` (files of torch.export). Artefacts: `store`,
`code_digest`, `linking`, `native`. Other libraries: `torchvision_library`.
"""
