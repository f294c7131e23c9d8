#include "rooftile/probe/question.hpp"

#include "rooftile/probe/fit.hpp"

namespace rooftile {

void ask(LaunchSampler& launcher, ProbeResult& result, const std::vector<Question>& questions) {
    std::vector<SampledLaunch> runs;
    for (const Question& q : questions) runs.push_back(q.run);
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 9);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const Question& q = questions[i];
        std::vector<double> answers;
        for (const double cycles : samples[i].cycles)
            answers.push_back(q.rate ? q.work / cycles : cycles / q.work);
        result.values.push_back(probe_value(q.name, q.key, q.unit, answers, q.note));
    }
}

}  // namespace rooftile
