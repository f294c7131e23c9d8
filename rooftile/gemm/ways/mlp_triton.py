from matmul_triton import product


def call(x, w1, b1, w2, b2):
    return product(product(x, w1, b1, gelu=True), w2, b2)
