// `pack`: weights of a published file as kernels read them. Needs no GPU.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/weights/pack_stored.hpp"

namespace rooftile::cli {
namespace {

std::string text_of(const PackTask& task, const Json& document, const std::string& tensor, const std::string& file) {
    const auto field = [&](const char* key) { return document.at("request").at(key).get<std::string>(); };
    const std::string zero = field("quant_zero"), group = field("quant_group");
    std::string request(task.operation->name());
    for (const auto& [key, text] : task.fields) request += fmt::format(" {} {}", flag_of(key), text);
    const double error = document.at("mean_square_error").get<double>(), of = document.at("mean_square").get<double>();
    return fmt::format("{}: {}, {} x {}, {}, scales of {}{}\n", tensor, document.at("format").get<std::string>(),
                       document.at("n").get<std::int64_t>(), document.at("k").get<std::int64_t>(),
                       group == "row" ? "one group a row" : "groups of " + group, field("quant_scale"),
                       zero == "none"  ? ""
                       : zero == "int" ? ", whole zero points"
                                       : ", zero points of that type")
           + fmt::format("  before  {} B, {:.4g} bits a weight\n  after   {} B, {:.4g} bits a weight, in {}\n",
                         document.at("file_bytes").get<std::int64_t>(), document.at("file_bits_a_weight").get<double>(), task.bytes,
                         document.at("packed_bits_a_weight").get<double>(), file)
           + (error == 0 ? std::string("  error   none: every weight is what the file says\n")
                         : fmt::format("  error   {:.3g} mean squared, {:.2g} of the weights' own mean square\n", error, error / of))
           + fmt::format("  next    rooftile plan {}\n", request);
}

int pack(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    if (!given.has("file") || !given.has("tensor")) throw RequestError("pack needs a file and a tensor's name: pack FILE TENSOR -o OUT");
    if (output.file.empty()) throw RequestError("pack needs a file for the packed weights: -o OUT");
    check_writable(output);
    std::error_code unlike;
    if (std::filesystem::equivalent(given.text("file"), output.file, unlike))
        throw RequestError(fmt::format("-o {} is the file of the weights itself, which would be lost; give another name", output.file));
    const WeightsFile file(given.text("file"));
    const auto weights = stored_weights(file, given.text("tensor"));
    const PackTask task = pack_task(*weights, given.text("quant_scale"));
    std::string packed(std::size_t(task.bytes), '\0');
    const PackError error = pack_stored(task, *weights, {reinterpret_cast<unsigned char*>(packed.data()), packed.size()});
    write_result(packed, output);
    Json document = {{"schema", "rooftile/pack/1"}, {"context", context_json(context_of(invocation.command))}};
    document.update(pack_json(task, *weights));
    document["mean_square_error"] = error.mean_square, document["mean_square"] = error.mean_square_of_weights;
    OutputFlags report = output;
    report.file.clear();
    write_result(format == Format::text ? text_of(task, document, given.text("tensor"), output.file) : document_text(document, format),
                 report);
    return int(ExitCode::done);
}

}  // namespace

void add_pack(std::vector<Verb>& verbs) {
    const char *input = "Weights", *out = "Output";
    verbs.push_back(
        {.path = "pack",
         .meaning = "Weights of 4 or 8 bits of a GGUF or safetensors file as kernels read them (no GPU)",
         .fields = {{"file", "FILE", "A .gguf or .safetensors file", input, FieldKind::positional},
                    {"tensor", "TENSOR", "Its tensor of Q4_0, Q4_K, Q8_0 or MXFP4; its layer of AWQ or GPTQ, which has a qweight, or of MXFP4, which has _blocks; NAME[E]: of one expert", input,
                     FieldKind::positional},
                    {"quant_scale", "TYPE", "Type of the packed scales, bf16 or fp16; default: as in the file, else fp16; of MXFP4 e8m0 alone", input},
                    {"json", "", "One JSON document of what was packed", out, FieldKind::on},
                    {"out", "FILE", "The packed weights", out, FieldKind::value, 'o'}},
         .documents = Documents::text_only,
         .examples = "Examples:\n"
                     "  rooftile pack model-Q4_K_M.gguf blk.0.ffn_up.weight -o up.packed\n"
                     "  rooftile pack model.safetensors model.layers.0.mlp.up_proj -o up.packed\n",
         .synopsis = "FILE TENSOR -o OUT",
         .run = pack});
}

}  // namespace rooftile::cli
