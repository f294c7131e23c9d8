"""What a type checker takes: every field by its name, what a plan has with its types."""

import rooftile

plan = rooftile.gemm(4096, 14336, 4096, machine="h100-sxm", type="fp16", tile=[128, 256, 64], swap_ab=False, a_major="m")
time: float | None = plan.prediction.time_us
label: str = plan.label
costs: list[int] = [step.cost_ns for step in plan.breakdown]
walls: list[str] = [wall.title for wall in plan.walls]
keys: list[str] = [number.key for other in plan.plans for number in other.counterfactuals]
fused: rooftile.Plan = rooftile.fuse("y = gelu(x)", ["x:bf16[64,64]"], threads=128)
rooftile.attention(2, 16, q=2048, dim=128, mask="causal")
rooftile.chain(65536, 128, 512, act="gelu", residual=True)
rows = plan.to_pandas()
