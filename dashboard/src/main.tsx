import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SessionStore } from "./api/session";
import { App } from "./app/app";
import "./ui/base.css";

const root = document.getElementById("root");
if (!root) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <App sessions={new SessionStore()} />
  </StrictMode>,
);
