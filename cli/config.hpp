// What a user wants of every run: rooftile.toml in the folder of the user's settings.
#pragma once

#include <map>
#include <string>

namespace rooftile::cli {

/// Texts under the keys of flags, as the file has them: `machine = "h200-sxm"`. Empty where there is no file. The file is
/// XDG_CONFIG_HOME/rooftile/rooftile.toml, else ~/.config/rooftile/rooftile.toml; ROOFTILE_CONFIG names another, or none ("").
/// Throws RequestError, one line, on a file that cannot be read, or that holds more than texts, numbers and true.
std::map<std::string, std::string> configured();

/// Where it was looked for; empty where nowhere.
std::string config_path();

}  // namespace rooftile::cli
