#include "rooftile/gemm/device/quantised_reference.hpp"

#include <span>

#include "kernels/gemm/quantised_reference_arguments.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = 256, ctas_per_sm = 8;

}  // namespace

Source quantised_reference_source(std::string_view arch) {
    Source source;
    source.name = "quantised_reference";
    source.text = "#include \"kernels/gemm/quantised_reference.cuh\"\n#include \"kernels/measure/verify.cuh\"\n";
    source.name_expressions = {"rooftile::fill_quantised", "rooftile::dequantise", "rooftile::verify<true, unsigned>",
                               "rooftile::verify<false, unsigned>", "rooftile::bounded_sums<true, false, unsigned>",
                               "rooftile::bounded_sums<false, false, unsigned>"};
    source.arch = nvrtc_arch(arch);
    return source;
}

QuantisedReference::QuantisedReference(const GemmProblem& problem) : problem_(problem) {
    problem_.n *= problem.b_matrices();  // of groups one matrix has the columns of all
    const auto device = Driver::instance().device(current_device());
    const CachedCompile made = compile_cached(quantised_reference_source(device.arch()));
    module_ = Module(std::span<const char>(made.compiled.cubin));
    fill_ = module_.function(made.compiled.lowered_names[0]);
    dequantise_ = module_.function(made.compiled.lowered_names[1]);
    verify_exact_ = module_.function(made.compiled.lowered_names[2]);
    verify_bounded_ = module_.function(made.compiled.lowered_names[3]);
    sums_exact_ = module_.function(made.compiled.lowered_names[4]);
    sums_bounded_ = module_.function(made.compiled.lowered_names[5]);
    ctas_ = unsigned(device.sm_count) * ctas_per_sm;
}

void QuantisedReference::fill(Stream stream, DevicePointer packed, bool exact, std::uint64_t seed) const {
    launch(fill_, {.grid_x = ctas_, .block_x = threads, .stream = stream},
           QuantisedFill{reinterpret_cast<unsigned char*>(packed), problem_.quantised, problem_.n, problem_.k,
                         seed, exact});
}

void QuantisedReference::verify(Stream stream, const VerifyArguments& arguments, bool exact, DevicePointer records, int ctas) const {
    launch(exact ? verify_exact_ : verify_bounded_, {.grid_x = unsigned(ctas), .block_x = threads, .stream = stream}, arguments, records);
}

void QuantisedReference::bounded_sums(Stream stream, const VerifyArguments& arguments, bool exact, Bounded* out, int ctas) const {
    launch(exact ? sums_exact_ : sums_bounded_, {.grid_x = unsigned(ctas), .block_x = threads, .stream = stream}, arguments, out);
}

void QuantisedReference::dequantise(Stream stream, DevicePointer packed, DevicePointer to, Type type, bool rounded) const {
    launch(dequantise_, {.grid_x = ctas_, .block_x = threads, .stream = stream},
           Dequantise{reinterpret_cast<const unsigned char*>(packed), reinterpret_cast<void*>(to),
                      problem_.quantised, problem_.n, problem_.k, type, problem_.b_type, rounded});
}

}  // namespace rooftile
