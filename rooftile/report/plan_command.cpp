#include "rooftile/report/plan_command.hpp"

#include "rooftile/report/context.hpp"

namespace rooftile {

std::string plan_command(std::string_view operation, std::initializer_list<std::span<const Field>> fields, const Given& given) {
    std::string out = "rooftile plan " + std::string(operation);
    for (const std::span<const Field> some : fields)
        for (const Field& field : some) {
            if (!given.has(field.key)) continue;
            for (const std::string& text : given.list(field.key)) {
                if (field.kind != FieldKind::positional) out += " " + flag_of(field.key);
                if (field.kind != FieldKind::on) out += " " + shell_quoted(text);
            }
        }
    return out;
}

}  // namespace rooftile
