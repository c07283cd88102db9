"""Functions that are declared only: which of them are called as they are, and which are made up."""

_MEMORY = (
    *("memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "bcmp"),
    *("strlen", "strnlen", "strcmp", "strncmp", "strchr", "strrchr", "strstr", "strspn", "strcspn"),
    *("strcpy", "strncpy", "stpcpy", "strcat", "strncat", "strcasecmp", "strncasecmp", "strpbrk"),
    *("abs", "labs", "llabs", "tolower", "toupper", "isalpha", "isdigit", "isalnum", "isspace"),
    *("isupper", "islower", "isxdigit", "isprint", "ispunct", "atoi", "atol", "qsort"),
    *("__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc"),
)
_MATHEMATICS = (
    *(
        "acos",
        "asin",
        "atan",
        "atan2",
        "cos",
        "sin",
        "tan",
        "acosh",
        "asinh",
        "atanh",
        "cosh",
        "sinh",
        "tanh",
    ),
    *("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "logb", "ilogb", "frexp", "ldexp", "modf"),
    *("scalbn", "scalbln", "cbrt", "fabs", "hypot", "pow", "sqrt", "erf", "erfc", "lgamma", "tgamma"),
    *("ceil", "floor", "nearbyint", "rint", "lrint", "llrint", "round", "lround", "llround", "trunc"),
    *("fmod", "remainder", "remquo", "copysign", "nextafter", "fdim", "fmax", "fmin", "fma"),
)

AS_THEY_ARE = frozenset((*_MEMORY, *_MATHEMATICS, *(f"{name}f" for name in _MATHEMATICS)))
"""Functions of the C library that compute, or work on memory that they are given, and do nothing else."""


def called_as_it_is(name: str) -> bool:
    """Say whether a declared function is called as it is; LLVM makes code of those of its own."""
    return name.startswith("llvm.") or name in AS_THEY_ARE
