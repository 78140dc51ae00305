export { jobWorkflow } from "./job";
