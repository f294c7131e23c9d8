"""What a type checker refuses: each line that ends in a comment, with a word of the reason."""

import rooftile

rooftile.gemm(4096, 14336, 4096, mm=1)  # Unexpected keyword argument "mm"
rooftile.gemm("many", 14336, 4096)  # incompatible type "str"
rooftile.gemm(1, 1, 1, a_major="n")  # Literal['k', 'm']
rooftile.fuse("y = gelu(x)", ["x:bf16[64,64]"], persistent="on")  # expected "Optional[bool]"
rooftile.attention(heads=16, q=2048, dims=128)  # Unexpected keyword argument "dims"
plan = rooftile.chain(1, 64, 64)
plan.prediction.time_us + 1  # Unsupported operand
text: int = plan.label  # Incompatible types in assignment
