# What documents show, run again: commands, tables of accuracy, pictures.

.PHONY: demo
demo: $(PROGRAM) ## search a plan for this machine's cores, run it, calibrate, predict again
	@docs/demo.sh $(PROGRAM)

.PHONY: docs
docs: $(PROGRAM) ## commands shown in README.md and docs/commands.md, run again
	@docs/refresh.sh README.md docs/commands.md

.PHONY: names
names: ## the tables of docs/names.md, from configs/names/
	@docs/names.sh

# Tables of measurements are no part of this repository.
.PHONY: accuracy accuracy-holdout
accuracy: $(PROGRAM) ## the tables of docs/accuracy/ and the picture of docs/accuracy.md, from RUNS=runs.csv; UNFINISHED=, KERNELS=, COLLECTIVES=file.csv for theirs
	$(if $(RUNS),,$(error accuracy: which published runs? RUNS=file.csv))
	@RUNS='$(RUNS)' UNFINISHED='$(UNFINISHED)' KERNELS='$(KERNELS)' COLLECTIVES='$(COLLECTIVES)' docs/accuracy.sh $(PROGRAM) docs/accuracy/*.md
	@$(PROGRAM) validate '$(RUNS)' --quiet --plot docs/accuracy.png >/dev/null

accuracy-holdout: $(PROGRAM) ## the tables that take minutes: each source by constants fitted without it, from RUNS=runs.csv
	$(if $(RUNS),,$(error accuracy-holdout: which published runs? RUNS=file.csv))
	@RUNS='$(RUNS)' COLLECTIVES='$(COLLECTIVES)' HOLDOUT=1 docs/accuracy.sh $(PROGRAM) docs/accuracy/*.md

.PHONY: pictures
pictures: $(PROGRAM) ## docs/*.png, made again by the commands of docs/howto.md; needs gnuplot
	@docs/pictures.sh $(PROGRAM)
