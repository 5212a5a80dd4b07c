import access from "./access.json";
import approvals from "./approvals.json";
import chat from "./chat.json";
import costs from "./costs.json";
import crew from "./crew.json";
import manage from "./manage.json";
import runs from "./runs.json";
import settings from "./settings.json";
import shell from "./shell.json";

/** Every sentence of the page, one file for each part of it. */
export default {
  ...access,
  ...approvals,
  ...chat,
  ...costs,
  ...crew,
  ...manage,
  ...runs,
  ...settings,
  ...shell,
};
