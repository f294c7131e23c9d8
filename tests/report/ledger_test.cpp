// Ledgers as files: what is written is read back, and what is no ledger is refused.
#include "rooftile/report/ledger.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rooftile/core/space.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

/// An operation of the list that declares a space.
const Operation& operation() {
    const auto found = std::find_if(operations().begin(), operations().end(),
                                    [](const Operation* o) { return !o->space_rule().empty(); });
    EXPECT_NE(found, operations().end());
    return **found;
}

LedgerEntry make_up() {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    LedgerEntry entry;
    entry.problem = operation().problem(example_of(operation()));
    for (const Plan& plan : declared_space(operation(), machine, entry.problem, 8).members) {
        const double us = 10 + 0.125 * double(entry.members.size());
        entry.members.push_back({operation().config_record(plan), plan.time_us, us, true, {}});
        if (entry.members.size() == 12) break;
    }
    entry.kept = 8;
    entry.members[9] = {entry.members[9].config, 11.0, std::nullopt, std::nullopt, "does not compile"};
    entry.members[10].right = false, entry.members[10].failed = "C[0, 0] is wrong";
    entry.members[11].right.reset();
    entry.picks = {{"somebody", 3}};
    entry.again = {{.member = 0, .us = 10.5}, {.member = 1, .us = 9.5, .settled_us = 9.75}};
    entry.duplicate = LedgerAgain{1, 9.625, 9.875};
    entry.duplicate_first_us = 9.0;
    entry.notes = {"nobody has no member here: it picks nothing"};
    entry.seconds = 1.5;
    return entry;
}
/// Made once: a whole space is planned for it.
const LedgerEntry& made_up() {
    static const LedgerEntry entry = make_up();
    return entry;
}

DocumentContext context() {
    DocumentContext context = context_of(machine_by_id("h200-sxm"), "rooftile ledger");
    context.gpu = GpuContext{"made up", "1.0", "13.0", "2026-01-01T00:00:00Z", 7};
    return context;
}

std::string text_of(const std::vector<LedgerEntry>& entries) {
    LedgerLines lines(operation());
    std::string text = json_text(lines.head(context(), "0123", "a law", entries[0].members[0].config), -1);
    for (const LedgerEntry& entry : entries) text += json_text(lines.line(entry), -1);
    return text;
}

TEST(Ledger, WhatIsWrittenIsReadBack) {
    const LedgerEntry written = made_up();
    const Ledger ledger = read_ledger(text_of({written}), "l.jsonl");
    EXPECT_EQ(ledger.seed, 7u);
    EXPECT_EQ(ledger.program_hash, "0123");
    EXPECT_EQ(ledger.machine_id, "h200-sxm");
    EXPECT_EQ(ledger.operation, &operation());
    ASSERT_EQ(ledger.entries.size(), 1u);
    const LedgerEntry& read = ledger.entries[0];
    EXPECT_EQ(operation().problem_record(read.problem), operation().problem_record(written.problem));
    ASSERT_EQ(read.members.size(), written.members.size());
    for (std::size_t i = 0; i < read.members.size(); ++i) {
        EXPECT_EQ(read.members[i].config, written.members[i].config) << i;
        EXPECT_EQ(read.members[i].first_us, written.members[i].first_us) << i;
        EXPECT_EQ(read.members[i].right, written.members[i].right) << i;
        EXPECT_EQ(read.members[i].failed, written.members[i].failed) << i;
    }
    EXPECT_EQ(read.kept, 8u);
    ASSERT_EQ(read.picks.size(), 1u);
    EXPECT_EQ(read.picks[0].name, "somebody");
    EXPECT_EQ(read.picks[0].member, 3u);
    ASSERT_EQ(read.again.size(), 2u);
    EXPECT_EQ(read.again[1].settled_us, 9.75);
    EXPECT_EQ(read.again[0].settled_us, std::nullopt);
    EXPECT_EQ(read.duplicate->us, 9.625);
    EXPECT_EQ(read.notes, written.notes);
}

TEST(Ledger, AConfigurationIsWrittenOnce) {
    const std::string one = text_of({made_up()}), two = text_of({made_up(), made_up()});
    const Ledger ledger = read_ledger(two, "l.jsonl");
    EXPECT_EQ(ledger.entries[1].members[5].config, ledger.entries[0].members[5].config);
    LedgerLines on(read_ledger(one, "l.jsonl"));  // a run that goes on
    EXPECT_EQ(one + json_text(on.line(made_up()), -1), two);
    EXPECT_THAT(json_text(on.line(made_up()), -1), HasSubstr("\"configurations\":[]"));
}

TEST(Ledger, ALineThatWasCutCountsAsAbsent) {
    const std::string text = text_of({made_up(), made_up()});
    const Ledger ledger = read_ledger(text.substr(0, text.size() - 20), "l.jsonl");
    EXPECT_EQ(ledger.entries.size(), 1u);
    EXPECT_EQ(ledger.text + json_text(LedgerLines(ledger).line(made_up()), -1), text);
}

TEST(Ledger, WhatIsNoLedgerIsRefusedByLine) {
    const std::string text = text_of({made_up()});
    const auto refused = [](const std::string& damaged, const char* why) {
        try {
            read_ledger(damaged, "l.jsonl");
            FAIL() << why;
        } catch (const RequestError& error) { EXPECT_THAT(error.what(), HasSubstr(why)); }
    };
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        changed.replace(changed.find(from), from.size(), to);
        return changed;
    };
    refused("", "no line");
    refused("{}\n", "l.jsonl:1");
    refused(with("rooftile/ledger/1", "rooftile/ledger/2"), "l.jsonl:1");
    refused(with("\"members\":[0,", "\"members\":[99,"), "l.jsonl:2");
    refused(with("\"somebody\":3", "\"somebody\":12"), "l.jsonl:2");
    refused(with("\"again\":[[0,", "\"again\":[[12,"), "l.jsonl:2");
    refused(with("\"seconds\"", "\"minutes\""), "l.jsonl:2");
}

}  // namespace
}  // namespace rooftile
