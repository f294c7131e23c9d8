// Every probe in a process of its own, so that a fault or a hang ends that one alone: after an illegal
// address a process can do nothing with its GPU any more, and a kernel that never ends goes with its process.
#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "rooftile/elapsed.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/probe/document.hpp"
#include "rooftile/probe/one.hpp"

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

void write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(to, text.data(), text.size());
        if (n > 0) text.remove_prefix(std::size_t(n));
        else if (n < 0 && errno != EINTR) return;
    }
}

/// What comes through `from` until it is closed; empty where that takes longer than `seconds`.
std::optional<std::string> read_all(int from, double seconds) {
    const auto start = Clock_::now();
    std::string text;
    char buffer[65536];
    while (true) {
        const double left = seconds - seconds_since(start);
        if (left <= 0) return std::nullopt;
        pollfd ready{from, POLLIN, 0};
        const int count = ::poll(&ready, 1, static_cast<int>(std::min(left, 1000.0) * 1000) + 1);
        if (count < 0 && errno != EINTR) return text;
        if (count <= 0) continue;
        const ssize_t n = ::read(from, buffer, sizeof buffer);
        if (n == 0) return text;
        if (n > 0) text.append(buffer, std::size_t(n));
        else if (errno != EINTR) return text;
    }
}

/// The JSON that `work` returns in a child; where there is none, an object with `error` and perhaps `code`.
Json in_child(double seconds, const std::function<Json()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw Error(ExitCode::internal, fmt::format("no pipe: {}", std::strerror(errno)));
    const pid_t child = ::fork();
    if (child < 0) {
        ::close(ends[0]), ::close(ends[1]);
        throw Error(ExitCode::internal, fmt::format("no new process: {}", std::strerror(errno)));
    }
    if (child == 0) {
        ::close(ends[0]);
        Json answer;
        try {
            answer = work();
        } catch (const Error& error) {
            answer = {{"error", error.what()}, {"code", int(error.code())}};
        } catch (const std::exception& error) { answer = {{"error", error.what()}}; }
        write_all(ends[1], answer.dump(-1, ' ', true, Json::error_handler_t::replace));
        ::_exit(0);  // nothing of the parent's is flushed or destroyed twice
    }
    ::close(ends[1]);
    const std::optional<std::string> text = read_all(ends[0], seconds);
    ::close(ends[0]);
    if (!text) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (!text) return {{"error", fmt::format("ended after {:.0f} s without an answer", seconds)}};
    const Json answer = Json::parse(*text, nullptr, false);
    if (!answer.is_discarded()) return answer;
    return {{"error", WIFSIGNALED(status) ? fmt::format("its process ended by signal {}", WTERMSIG(status))
                                          : std::string("its process ended without an answer")}};
}

/// The driver's start, one compile and the tear-down, beside what a probe needs itself.
constexpr double child_grace_seconds = 15;

ProbedGpu gpu_in_child(int device) {
    const Json answer = in_child(30, [device]() -> Json {
        const ProbedGpu gpu = probed_gpu(device);
        return {{"machine", to_toml(gpu.machine)},
                {"name", gpu.name},
                {"driver", gpu.driver},
                {"nvrtc", gpu.nvrtc},
                {"limit", gpu.power_limit_w}};
    });
    if (answer.contains("error"))
        throw Error(ExitCode(answer.value("code", int(ExitCode::gpu_failed))),
                    answer.at("error").get<std::string>());
    ProbedGpu gpu;
    gpu.machine = parse_machine(answer.at("machine").get<std::string>(), "the live device");
    gpu.name = answer.at("name").get<std::string>();
    gpu.driver = answer.at("driver").get<std::string>();
    gpu.nvrtc = answer.at("nvrtc").get<std::string>();
    gpu.power_limit_w = answer.at("limit").get<double>();
    return gpu;
}

}  // namespace

ProbeRun run_probes(const ProbeOptions& options) {
    const auto start = Clock_::now();
    probes_named(options.only);  // an unknown name is told before anything runs
    ProbeRun run;
    run.gpu = gpu_in_child(options.device);
    run.results = in_passes(options, run.gpu.machine, [&](const Probe& probe) {
        const auto probe_start = Clock_::now();
        const double left = options.max_seconds - seconds_since(start);
        if (left < min_seconds(probe)) return left_out(probe, left);
        const double seconds = std::min(left, probe.seconds);
        const Json answer = in_child(seconds + child_grace_seconds, [&] {
            const Context context(options.device);
            return result_json(run_probe(probe, options.device, seconds));
        });
        ProbeResult result;
        if (answer.contains("error")) {
            result.probe = probe.name;
            result.failure = answer.at("error").get<std::string>();
        } else {
            result = result_of(answer);
        }
        result.seconds = seconds_since(probe_start);
        return result;
    });
    run.seconds = seconds_since(start);
    return run;
}

}  // namespace rooftile
