export { bootstrapWorkflow } from "./bootstrap";
export { jobWorkflow } from "./job";
