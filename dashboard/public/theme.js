// Runs before the first paint: a dark page must not flash white. src/app/theme.ts
// applies later changes of the theme.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem("forge.theme");
  } catch {
    // Without storage, the system's theme applies.
  }
  const isDark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
})();
