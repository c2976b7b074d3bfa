# Fit rrcov's estimators to every CSV of a folder; called by benchmarks/real_rrcov.py.
#
# For each table and estimator: its location, and a score and a flag of each row, as CSV.

suppressMessages(library(rrcov))
folder <- commandArgs(trailingOnly = TRUE)[1]
LIMIT <- 20 # seconds for one fit

write.row <- function(..., file) cat(paste(c(...), collapse = ","), "\n", file = file, append = TRUE)

fits <- list(
  CovMcd = function(X) {
    est <- CovMcd(X, nsamp = "deterministic")
    list(location = getCenter(est), scores = getDistance(est), flagged = getFlag(est) == 0)
  },
  CovMrcd = function(X) {
    est <- CovMrcd(X)
    list(location = getCenter(est), scores = getDistance(est), flagged = getFlag(est) == 0)
  },
  PcaHubert = function(X) {
    est <- PcaHubert(X, k = 2)
    scores <- est@sd / est@cutoff.sd
    # Components that span all columns leave no orthogonal distances.
    if (length(est@od) == length(scores) && length(est@cutoff.od) == 1 && is.finite(est@cutoff.od) && est@cutoff.od > 0)
      scores <- pmax(scores, est@od / est@cutoff.od)
    list(location = getCenter(est), scores = scores, flagged = est@flag == 0)
  }
)

for (file in sort(list.files(folder, pattern = "^[0-9]+[.]csv$"))) {
  X <- as.matrix(read.csv(file.path(folder, file), header = FALSE))
  for (name in names(fits)) {
    out <- file.path(folder, paste0(sub("[.]csv$", "", file), "-", name, ".out"))
    set.seed(0)
    result <- tryCatch({
      setTimeLimit(cpu = LIMIT, transient = TRUE)
      # CovMcd prints where the scatter is singular.
      capture.output(found <- suppressMessages(suppressWarnings(fits[[name]](X))))
      setTimeLimit()
      found
    }, error = function(e) { setTimeLimit(); conditionMessage(e) })
    if (is.character(result)) {
      cat("failed", gsub("[\n,]", " ", substr(result, 1, 60)), "\n", sep = ",", file = out)
    } else {
      write.row(format(result$location, digits = 15, trim = TRUE), file = out)
      write.row(format(result$scores, digits = 15, trim = TRUE), file = out)
      write.row(as.integer(result$flagged), file = out)
    }
  }
}
cat(R.version$major, ".", R.version$minor, " ", as.character(packageVersion("rrcov")), " ",
    as.character(packageVersion("robustbase")), "\n", sep = "", file = file.path(folder, "versions"))
