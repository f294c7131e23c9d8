// From C++ to C: exceptions become statuses, strings become texts that the caller frees.
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "rooftile/error.hpp"

namespace rooftile::c {

/// Keeps why a call failed, for rooftile_error_message(). Returns the status.
int failed(ExitCode code, const std::string& message, const std::string& detail = {}) noexcept;

/// A copy that rooftile_free_text() frees. Throws std::bad_alloc.
char* text_of(const std::string& text);

/// What `pointer`, an argument of that name, points to. Throws RequestError where it is null.
template <class T>
T& given(T* pointer, const char* name) {
    if (!pointer) throw RequestError(std::string(name) + " is null");
    return *pointer;
}

/// Runs `work`, which may throw whatever it likes.
template <class Work>
int guarded(Work&& work) noexcept {
    try {
        work();
        return 0;
    } catch (const Error& error) {
        return failed(error.code(), error.what(), error.detail());
    } catch (const std::bad_alloc&) {
        return failed(ExitCode::internal, "out of memory");
    } catch (const std::exception& error) {
        return failed(ExitCode::internal,
                      std::string("internal error: ") + error.what() + "; please report it");
    } catch (...) { return failed(ExitCode::internal, "internal error; please report it"); }
}

}  // namespace rooftile::c
