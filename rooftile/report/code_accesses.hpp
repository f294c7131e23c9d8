// What a kernel's code says of itself: its parameters, and how wide its accesses of global memory are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// Instructions by the bytes that a thread moves with each.
struct AccessWidths {
    std::map<int, int> loads, stores;  ///< bytes -> instructions
    bool empty() const { return loads.empty() && stores.empty(); }
};

/// Accesses of global memory in the SASS of the entry of that lowered name, as nvdisasm or cuobjdump prints it.
AccessWidths sass_accesses(std::string_view sass, std::string_view lowered_name);
/// The same in PTX, where ptxas may still join or part them.
AccessWidths ptx_accesses(std::string_view ptx, std::string_view lowered_name);

/// "2 of 16 B, 1 of 2 B"; "none".
std::string widths_text(const std::map<int, int>& widths);

/// PTX or SASS with a remark behind what a reader looks for: how wide accesses are and how many elements that is, predicates, indices of
/// threads and CTAs, barriers, copies, the units for functions and matrices. Still what an assembler takes: remarks are comments.
std::string annotated_code(std::string_view text);
/// What names of registers and instructions mean, to be read before: comments of a few lines.
std::string ptx_legend();
std::string sass_legend();

/// Lowered names of the entries, in their order.
std::vector<std::string> ptx_entries(std::string_view ptx);

/// Bytes of each parameter of the entry of that lowered name, in their order, as its PTX declares them. Empty where the text
/// has no such entry, or the entry no parameters.
std::vector<int> entry_parameters(std::string_view ptx, std::string_view lowered_name);
/// "8 B, 4 B"; "none".
std::string parameters_text(const std::vector<int>& bytes);

}  // namespace rooftile
